"""Fixtures that several tests share: files, tiny encoders, small runs, and the command."""

import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support.browser import HOW, Browser, find_chromium
from support.commands import Command, Done, Refuse
from support.embedding_service import EmbeddingService
from support.endpoint import FakeEndpoint
from support.small_texts import QUICK_FLAGS, SmallTask, small_task

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: other tests want a core, too
settings.register_profile("newfound", deadline=None)  # other tests may have the core
settings.load_profile("newfound")

WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] the my a card lost pay bill money bank cash trip flight
hotel book travel music play song loud stop weather rain sun cold warm day please help me now"""
VOCABULARY = WORDS.split()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes, too")
    parser.addoption("--scale", action="store_true", help="run the tests on Ray and Spark, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark in ("slow", "scale"):
        for item in [] if config.getoption(f"--{mark}") else items:
            if mark in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"{mark}: run with --{mark}"))


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checkpoints keep every piece of work, however quick it was."""
    from newfound.checkpoints import checkpoints

    monkeypatch.setattr(checkpoints, "WORTH", 0.0)
    monkeypatch.setattr(checkpoints, "LOSS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)


@pytest.fixture
def quick_newfound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the method `newfound` train for few steps, for tests that do not look at its accuracy."""
    from newfound.methods.newfound import config, counting

    monkeypatch.setattr(config, "MIN_STEPS", 0)
    monkeypatch.setattr(config, "MOST_BY_SIZE", 1)
    monkeypatch.setattr(counting, "COUNTS", 1)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A chromium without a window."""
    executable = find_chromium()
    if executable is None:
        pytest.skip(HOW)
    one = Browser(executable, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture
def put(tmp_path: Path) -> Any:
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The paper's data sets, if the reader has them."""
    folder = os.environ.get("NEWFOUND_DATA")
    if not folder:
        pytest.skip("set NEWFOUND_DATA to the folder of the paper's data sets")
    return Path(folder)


def save_tiny_encoder(
    folder: Path, family: str = "bert", layers: int = 3, *, word_head: bool = False
) -> Path:
    """Build a tiny random encoder with the transformers library and save it as users have them."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(
        models.WordPiece({w: i for i, w in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(folder)
    shared = {"vocab_size": len(VOCABULARY), "max_position_embeddings": 66, "pad_token_id": 0}
    if family == "distilbert":
        shape = {"dim": 32, "n_layers": layers, "n_heads": 4, "hidden_dim": 64}
    else:
        shape = {
            "hidden_size": 32,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "layer_norm_eps": 1e-7,
        }
    if family == "modernbert":  # three tokens on each side, so that short texts tell
        special = {"cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
        shape |= {"local_attention": 6, "norm_eps": 1e-7, **special}
    config = AutoConfig.for_model(family, **shared, **shape)
    torch.manual_seed(0)
    maker = AutoModelForMaskedLM if word_head else AutoModel
    model = maker.from_config(config)
    with torch.no_grad():  # fresh biases and norms are all zeros and ones: make each one tell
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    model.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT."""
    return str(save_tiny_encoder(tmp_path_factory.mktemp("tiny-bert"), word_head=True))


@pytest.fixture(scope="session")
def small_run(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that the command made of small_texts.small_task(); to be read only."""
    from newfound.cli.main import main

    folder = tmp_path_factory.mktemp("small-run")
    (folder / "table.csv").write_text(small_task().csv())
    flags = ["--categories", "4", "--encoder", tiny_encoder, *QUICK_FLAGS]
    assert main(["discover", str(folder / "table.csv"), "-o", str(folder / "run"), *flags]) == 0
    return folder / "run"


@pytest.fixture(scope="session")
def task() -> SmallTask:
    """A small task of well separated texts; to be read only."""
    return small_task()


@pytest.fixture
def flags(tiny_encoder: str) -> list[str]:
    """Flags that let `newfound discover` take a fraction of a second."""
    return ["--encoder", tiny_encoder, *QUICK_FLAGS]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process; standard input holds `stdin`."""
    from newfound.cli.main import main

    def run(*arguments: str | Path, stdin: str = "") -> Done:
        stream = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = int(exit.code or 0)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def refuse(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Run a command that must fail, check that it leaves nothing, and return its one sentence."""
    # On a slow machine, its work might be worth keeping.
    monkeypatch.setattr("newfound.checkpoints.checkpoints.WORTH", float("inf"))

    def contents() -> dict[Path, bytes]:
        return {p: p.read_bytes() if p.is_file() else b"" for p in tmp_path.rglob("*")}

    def run(*arguments: str | Path, stdin: str = "") -> str:
        before = contents()
        done = command(*arguments, stdin=stdin)
        assert done.code == 2, done
        assert done.out == ""
        assert contents() == before
        lines = [line for line in done.err.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, done.err
        assert lines[0].startswith("newfound: ")
        return lines[0].removeprefix("newfound: ")

    return run


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    """An OpenAI-compatible endpoint on the loopback."""
    server = FakeEndpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def embedding_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EmbeddingService]:
    """An embedding service on the loopback; its vectors are stored under tmp_path."""
    monkeypatch.setenv("NEWFOUND_EMBEDDING_CACHE", str(tmp_path / "stored-vectors"))
    monkeypatch.delenv("NEWFOUND_EMBEDDING_KEY", raising=False)
    server = EmbeddingService()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
