"""Where files are looked for, and what is believed of them. No test touches the network."""

import gzip
import hashlib
import tracemalloc

import pytest

from skbandit.datasets import _files
from skbandit.datasets._files import DataFile, load_bytes
from tests.worlds import refuses

CONTENT = b"one,two\n1,2\n"
TOY = DataFile("toy", "toy.csv", "https://example.org/toy.csv", hashlib.sha256(CONTENT).hexdigest())


class FakeServer:
    """Stands in for sklearn's `fetch_file`: writes a content and remembers how it was called."""

    def __init__(self, content=CONTENT):
        self.content = content
        self.calls = []

    def __call__(self, url, *, folder, local_filename, sha256):
        self.calls.append((url, folder, local_filename, sha256))
        if isinstance(self.content, Exception):
            raise self.content
        path = folder / local_filename
        path.write_bytes(self.content)
        return path


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache of scikit-learn, and no other folder."""
    monkeypatch.delenv("SKBANDIT_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "skbandit" / "toy"


@pytest.fixture
def server(monkeypatch):
    fake = FakeServer()
    monkeypatch.setattr(_files, "fetch_file", fake)
    return fake


def store(home, content=CONTENT, packed=False):
    folder = home / TOY.folder
    folder.mkdir(parents=True)
    path = folder / (TOY.name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("named_by", ["argument", "environment"])
def test_local_file(tmp_path, monkeypatch, server, packed, named_by):
    store(tmp_path, packed=packed)
    if named_by == "environment":
        monkeypatch.setenv("SKBANDIT_DATA", str(tmp_path))
        assert load_bytes(TOY) == CONTENT
    else:
        assert load_bytes(TOY, data_home=tmp_path) == CONTENT
    assert server.calls == []


def test_data_home_wins_over_environment(tmp_path, monkeypatch, server):
    store(tmp_path / "named", content=b"not looked at")
    monkeypatch.setenv("SKBANDIT_DATA", str(tmp_path / "named"))
    store(tmp_path / "given")
    assert load_bytes(TOY, data_home=tmp_path / "given") == CONTENT


@pytest.mark.parametrize("packed", [True, False])
def test_wrong_content_is_refused(tmp_path, server, packed):
    path = store(tmp_path, content=b"tampered", packed=packed)
    with pytest.raises(OSError, match="is not the published file") as caught:
        load_bytes(TOY, data_home=tmp_path)
    assert str(path) in str(caught.value)
    assert TOY.sha256 in str(caught.value)
    assert server.calls == []


def test_download_once_into_cache(cache, server):
    assert load_bytes(TOY) == CONTENT
    assert server.calls == [(TOY.url, cache, TOY.name, TOY.sha256)]
    assert load_bytes(TOY, download_if_missing=False) == CONTENT
    assert len(server.calls) == 1


def test_download_into_data_home(tmp_path, cache, server):
    assert load_bytes(TOY, data_home=tmp_path) == CONTENT
    assert (tmp_path / TOY.folder / TOY.name).read_bytes() == CONTENT
    assert not cache.exists()


def test_download_leaves_the_named_folder_alone(tmp_path, monkeypatch, cache, server):
    named = tmp_path / "shared"
    named.mkdir()
    monkeypatch.setenv("SKBANDIT_DATA", str(named))
    assert load_bytes(TOY) == CONTENT
    assert list(named.iterdir()) == []
    assert (cache / TOY.name).exists()


def test_wrong_download_is_refused(monkeypatch):
    monkeypatch.setattr(_files, "fetch_file", FakeServer(b"an error page"))
    refuses("is not the published file", load_bytes, TOY, error=OSError)


def test_missing(monkeypatch, tmp_path, server):
    monkeypatch.setenv("SKBANDIT_DATA", str(tmp_path))
    with pytest.raises(OSError, match=r"toy\.csv was not found in") as caught:
        load_bytes(TOY, download_if_missing=False)
    for cure in ("download_if_missing=True", "data_home", "SKBANDIT_DATA", TOY.url):
        assert cure in str(caught.value)
    assert server.calls == []


def test_failed_download(monkeypatch):
    monkeypatch.setattr(_files, "fetch_file", FakeServer(TimeoutError("no answer")))
    with pytest.raises(OSError, match=r"download failed \(no answer\)") as caught:
        load_bytes(TOY)
    assert "SKBANDIT_DATA" in str(caught.value)
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.thorough
def test_a_compressed_file_is_hashed_before_it_is_unpacked_whole(tmp_path, server):
    path = tmp_path / TOY.folder / f"{TOY.name}.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(bytes(2**26)))  # 64 MiB of zeros in 64 KiB
    tracemalloc.start()
    refuses("is not the published file", load_bytes, TOY, data_home=tmp_path, error=OSError)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23
