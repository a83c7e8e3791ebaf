"""Lines of progress go to stdout, or to logging if that is configured to show them."""

import logging

import pytest

from skbandit.utils import _fitting
from skbandit.utils._fitting import report_progress


@pytest.fixture
def logger(monkeypatch):
    """A logger in place of the package's, without the handlers that pytest adds to that."""
    fresh = logging.Logger("skbandit", logging.INFO)
    monkeypatch.setattr(_fitting, "_LOGGER", fresh)
    return fresh


def test_without_handlers_progress_is_printed(logger, capsys):
    report_progress("step 1")
    assert capsys.readouterr().out == "step 1\n"


def test_a_handler_for_info_gets_it_instead(logger, capsys):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    report_progress("50% done")
    assert [record.getMessage() for record in records] == ["50% done"]
    assert capsys.readouterr().out == ""


def test_a_handler_that_hides_info_leaves_it_printed(logger, capsys):
    logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.WARNING)
    report_progress("step 2")
    assert capsys.readouterr().out == "step 2\n"
