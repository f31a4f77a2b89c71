"""Every program of the corpus, printed as an archive holds it and read back, is the same program."""

from __future__ import annotations

import pytest

import rekindle
from rekindle.errors import RekindleError
from tests.oracle.subjects import Subject, subjects
from tests.support.texts import round_trip_differences

SUBJECTS = subjects()

_UNION = ") cannot be written as source: no reader knows which one to call"
_PYTHON = "the program calls the Python function "
REFUSED: dict[str, str] = {
    "language.classes.ignored_method": f"{_PYTHON}'in_python'",
    "language.functions.IgnoredMethod": f"{_PYTHON}'log'",
    "language.functions.ignored_function": f"{_PYTHON}'in_python'",
    "language.functions.ignored_that_raises": f"{_PYTHON}'checked_in_python'",
    "language.functions.ignored_untyped": f"{_PYTHON}'in_python_untyped'",
    "language.modules.interface_variable": f"Squares{_UNION}",
    "language.statements.with_inference_mode": f"{_PYTHON}'inference_mode'",
    "language.statements.with_autocast": f"{_PYTHON}'_autocast'",
    "language.statements.with_autocast_of_one_device": f"{_PYTHON}'autocast'",
    "language.statements.with_record_function": f"{_PYTHON}'record_function'",
    "oracle.interfaces.interface_branch": f"Shift{_UNION}",
    "oracle.interfaces.interface_reassigned": f"Shift{_UNION}",
}
"""Programs that no source can say, and what is told of them."""


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_text_is_read_back_as_the_same_program(subject: Subject) -> None:
    compiled = rekindle.script(subject.make())
    if subject.name in REFUSED:
        with pytest.raises(RekindleError) as caught:
            list(round_trip_differences(compiled))
        assert REFUSED[subject.name] in str(caught.value)
    else:
        assert not "\n".join(round_trip_differences(compiled))


def test_list_names_programs() -> None:
    assert set(REFUSED) <= {subject.name for subject in SUBJECTS}
    assert len(SUBJECTS) - len(REFUSED) >= 800
