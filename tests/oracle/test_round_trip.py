"""Every program of the corpus, printed as an archive holds it and read back, is the same program."""

from __future__ import annotations

import pytest

import rekindle
from rekindle.errors import RekindleError
from tests.oracle.known_archive_differences import READ_BACK, REFUSED, REFUSED_BY_FILES
from tests.oracle.subjects import Subject, subjects
from tests.support.texts import round_trip_differences

SUBJECTS = subjects()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_text_is_read_back_as_the_same_program(subject: Subject) -> None:
    compiled = rekindle.script(subject.make())
    if subject.name in REFUSED and subject.name not in REFUSED_BY_FILES:
        with pytest.raises(RekindleError) as caught:
            list(round_trip_differences(compiled))
        assert REFUSED[subject.name] in str(caught.value)
    else:
        differences = "\n".join(round_trip_differences(compiled))
        assert bool(differences) is (subject.name in READ_BACK), differences


def test_list_names_programs() -> None:
    assert {*REFUSED, *READ_BACK} <= {subject.name for subject in SUBJECTS}
    assert set(REFUSED_BY_FILES) <= set(REFUSED)
    assert len(SUBJECTS) - len(REFUSED) >= 800
