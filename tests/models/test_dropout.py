"""Leaving dropout out for a while."""

from torch import nn

from selfsent.models.dropout import without_dropout


def test_leaving_dropout_out_for_a_while_leaves_every_part_in_its_own_mode():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)))
    model[1][0].eval()
    before = [part.training for part in model.modules()]
    assert before == [True, True, True, False, True]
    with without_dropout(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == before
