import pytest
import torch

from naive import densities
from selfsent.models.heads.flow import ActNorm, Flow


def make_flow(size=11, started=True, **options):
    """A flow whose couplings do something."""
    torch.manual_seed(0)
    flow = Flow(size, **{"levels": 3, "depth": 2, "width": 5, **options})
    if started:
        with torch.no_grad():
            for parameter in flow.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
    return flow.double()


@pytest.fixture(autouse=True)
def in_double(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@pytest.mark.parametrize(("size", "levels"), [(11, 1), (11, 3), (8, 3)])
def test_log_determinant_is_that_of_the_jacobian(size, levels):
    flow = make_flow(size, levels=levels)
    for x in torch.randn(3, size, dtype=torch.float64):
        assert (flow.transformed(x[None])[0] - x).abs().max() > 0.1
        jacobian = torch.autograd.functional.jacobian(lambda x: flow.transformed(x[None])[0], x)
        torch.testing.assert_close(flow.log_determinant(), torch.linalg.slogdet(jacobian).logabsdet)


def test_likelihood_equals_the_flow_written_out():
    flow = make_flow()
    x = torch.randn(5, 11, dtype=torch.float64)
    expected = [densities.flow(dict(flow.state_dict()), row.tolist(), levels=3, depth=2) for row in x]
    torch.testing.assert_close(flow.log_likelihood(x).tolist(), expected, rtol=1e-9, atol=1e-9)


def test_actnorms_inside_the_couplings_start_too():
    flow = make_flow(started=False)
    flow.start(torch.randn(50, 11, dtype=torch.float64))
    assert all(module.log_scale.any() for module in flow.modules() if isinstance(module, ActNorm))
