from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from syntax.errors import SpecError
from trainer.checkpoint import (
    clear_new,
    find_checkpoint,
    load_checkpoint,
    load_random_state,
    publish_new,
    random_state,
    save_checkpoint,
    set_random_state,
)


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def write(folder, step: int) -> None:
    clear_new(folder)
    save_checkpoint(folder, {"step": step}, rank=0)
    publish_new(folder)


def test_every_generator_goes_on_where_it_was(tmp_path) -> None:
    draw()
    write(tmp_path / "checkpoint", 1)
    expected = draw()
    draw()
    state = load_random_state(tmp_path / "checkpoint", rank=0)
    assert state is not None
    set_random_state(state)
    assert draw() == expected


def test_a_process_that_the_saved_run_did_not_have_has_no_state(tmp_path) -> None:
    write(tmp_path / "checkpoint", 1)
    assert load_random_state(tmp_path / "checkpoint", rank=1) is None


def test_a_new_checkpoint_replaces_the_old_one_alone(tmp_path) -> None:
    for step in (1, 2, 3):
        write(tmp_path / "checkpoint", step)
    assert load_checkpoint(find_checkpoint(tmp_path / "checkpoint"))["step"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_crash_while_writing_leaves_the_previous_checkpoint(tmp_path) -> None:
    folder = tmp_path / "checkpoint"
    write(folder, 1)
    save_checkpoint(folder, {"step": 2}, rank=0)
    assert load_checkpoint(find_checkpoint(folder))["step"] == 1


def test_a_crash_between_the_two_renames_leaves_one_of_them(tmp_path) -> None:
    folder = tmp_path / "checkpoint"
    write(folder, 1)
    save_checkpoint(folder, {"step": 2}, rank=0)
    folder.rename(tmp_path / "checkpoint.old")
    assert load_checkpoint(find_checkpoint(folder))["step"] == 1
    publish_new(folder)
    assert load_checkpoint(find_checkpoint(folder))["step"] == 2


def test_leftovers_of_a_crash_do_not_mix_with_the_next_checkpoint(tmp_path) -> None:
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, None, rank=7)
    write(folder, 1)
    assert load_random_state(folder, rank=7) is None


def test_another_format_is_refused(tmp_path) -> None:
    save_checkpoint(tmp_path / "checkpoint", {"format": 99}, rank=0)
    publish_new(tmp_path / "checkpoint")
    with pytest.raises(SpecError, match="format 99"):
        load_checkpoint(tmp_path / "checkpoint")


def test_states_are_plain_and_need_no_trust() -> None:
    assert isinstance(random_state()["numpy"], list)
