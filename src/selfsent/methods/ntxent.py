"""NT-Xent, BSL's contrastive ablation: a view must recognise the other view of its sentence among all of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from selfsent.fast.packing import Packed
from selfsent.methods.bootstrap import BOOTSTRAP, CODE, NetworkOptions, TwoNetworks
from selfsent.methods.contrast import nt_xent
from selfsent.methods.method import STATIC, Loss, Method
from selfsent.methods.two_views import pair_of_views, varied
from selfsent.settings import setting


@dataclass(frozen=True)
class Options(NetworkOptions):
    """Options of NT-Xent: those of BSL, and a temperature."""

    temperature: float = setting(0.05, "divides the cosines", above=0.0)


class NtxentLearner(TwoNetworks):
    """−log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), summed over both views of every sentence (Chen et al. 2020, eq. 1).

    Everything but the loss is BSL's: the predictions z of the online network are compared with what the target network
    makes of all 2n views, less the view that z itself was made from.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | one look at them |
    | `views[1]` | the same n | another look |
    | loss | a sum | over the 2n looks |

    Example:
        >>> learner = NtxentLearner(model, Options())
        >>> one, other = pack(model, ["a cat", "dogs"]), pack(model, ["cat sat", "bark"])
        >>> learner([one, other]).count
        4
    """

    options: Options

    def compare(
        self, views: Sequence[Packed], first: Tensor, second: Tensor, first_target: Tensor, second_target: Tensor
    ) -> Loss:
        """The loss of (n, d) predictions z₁, z₂ and (n, d) targets h₁, h₂: one positive and 2(n − 1) negatives each."""
        total = nt_xent(first, second, first_target, second_target, self.options.temperature, views)
        return Loss(total, 2 * len(first))


NTXENT = Method(
    name="ntxent",
    title="NT-Xent, the contrastive ablation of BSL",
    citation="Chen, Kornblith, Norouzi and Hinton, 2020. arXiv:2002.05709; aclanthology.org/2021.acl-long.402",
    objective="−log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), h the 2n views of the batch less the one z is made from",
    learner=NtxentLearner,
    options=Options,
    views=pair_of_views,
    batchwise=True,
    pooling="mean",
    published=BOOTSTRAP.published,
    defaults=BOOTSTRAP.defaults.but(learning_rate=5e-4),
    large_learning_rate=BOOTSTRAP.large_learning_rate,
    static=STATIC,
    suits_static=varied,
    presets={"paper": {}, "code": CODE, "faithful": CODE},
)
