"""PDF to title and text, page after page."""

from __future__ import annotations

import io
import logging
from typing import Final

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

from .base import Page, Unreadable, one_line

# It tells of every small flaw that it got over; what it does not get over is raised.
logging.getLogger("pypdf").setLevel(logging.ERROR)

_MADE_BY_PROGRAMS: Final = ("untitled", "microsoft word", "microsoft powerpoint", "powerpoint presentation")


def pages(data: bytes, most_characters: int) -> Page:
    """Title and text of a PDF, an empty line between pages.

    Raises Unreadable for one that is encrypted, damaged, without text (a scan) or has more than `most_characters`.
    """
    try:
        reader = PdfReader(io.BytesIO(data))
        # Many are encrypted with an empty password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("this PDF is encrypted; save it without a password")
        title = str(reader.metadata.title or "") if reader.metadata else ""
        texts, size = [], 0
        for page in reader.pages:
            text = page.extract_text().replace("\0", "").strip()
            # Characters that fonts leave without meaning come as halves of pairs.
            texts.append(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
            size += len(text)
            if size > most_characters:
                raise Unreadable(f"this PDF has more than {most_characters} characters of text; split it")
    except Unreadable:
        raise
    except (DependencyError, FileNotDecryptedError):
        raise Unreadable("this PDF is encrypted; save it without a password") from None
    except RecursionError:
        raise Unreadable("this PDF is damaged: its objects refer to each other; save it anew") from None
    except Exception as error:
        # The library raises whatever its parts meet in a damaged file.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unreadable(f"this PDF is damaged: {reason}. Save it anew") from None
    if not any(texts):
        raise Unreadable("this PDF has no text, it may be a scan; run text recognition (OCR) over it")
    title = one_line(title.replace("\0", "").encode(errors="ignore").decode())
    return Page("" if title.lower().startswith(_MADE_BY_PROGRAMS) else title, "\n\n".join(filter(None, texts)))
