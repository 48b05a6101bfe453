"""The inventories of UD are stored as ids, so their order is for ever."""

from __future__ import annotations

import numpy as np
import pytest

from syntax.trees.ud import DEPREL, UPOS, deprel_id, deprel_ids, upos_id, upos_ids


def test_there_are_17_tags_and_37_relations_after_none() -> None:
    assert (len(UPOS), len(DEPREL)) == (18, 38)
    assert len(set(UPOS)) == 18
    assert len(set(DEPREL)) == 38
    assert UPOS[0] == DEPREL[0] == "_"
    assert list(UPOS[1:]) == sorted(UPOS[1:])
    assert list(DEPREL[1:]) == sorted(DEPREL[1:])


def test_stored_ids_do_not_move() -> None:
    assert [upos_id(tag) for tag in ("ADJ", "NOUN", "PUNCT", "X")] == [1, 8, 13, 17]
    assert [deprel_id(rel) for rel in ("acl", "nsubj", "root", "xcomp")] == [1, 27, 35, 37]


@pytest.mark.parametrize(("relation", "plain"), [("nsubj:pass", "nsubj"), ("obl:tmod:x", "obl")])
def test_subtypes_share_their_relations_id(relation: str, plain: str) -> None:
    assert deprel_id(relation) == deprel_id(plain) != 0


@pytest.mark.parametrize("value", [None, "_", "", "noun", "NN", ":pass"])
def test_tags_outside_of_the_inventory_have_id_zero(value: str | None) -> None:
    assert upos_id(value) == deprel_id(value) == 0


def test_ids_of_many_tags_are_a_uint8_vector() -> None:
    assert upos_ids(["NOUN", None, "X"]).tolist() == [8, 0, 17]
    assert deprel_ids(["nsubj:pass", None]).tolist() == [27, 0]
    assert upos_ids([]).dtype == deprel_ids([]).dtype == np.uint8
