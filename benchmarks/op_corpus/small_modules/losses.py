"""Losses and metrics of classifiers, regressions and segmentations, as scripts write them."""

from benchmarks.op_corpus.small_modules.arguments import (
    INDICES,
    INF,
    NAN,
    PLAIN,
    PROBABILITIES,
    SIGNS,
    TRUTHS,
    ZERO,
)
from benchmarks.op_corpus.small_modules.module_text import FLOATS, Draft, SmallModule

REDUCTIONS = ("mean", "mean", "sum", "none")
SPECIALS = (PLAIN, PLAIN, NAN, INF, ZERO)
# Of x and y alike: {o} is the reduction
OF_TWO = (
    "F.mse_loss(x, y, {o})",
    "F.l1_loss(x, y, {o})",
    "F.smooth_l1_loss(x, y, {o}, beta={beta})",
    "F.huber_loss(x, y, {o}, delta={beta})",
    "F.kl_div(x.log_softmax(-1), y.softmax(-1), {o})",
    "F.kl_div(x.log_softmax(-1), y.log_softmax(-1), {o}, log_target=True)",
    "F.poisson_nll_loss(x, y.abs(), {o})",
    "F.poisson_nll_loss(x, y.abs().round(), {o}, full=True)",
    "F.gaussian_nll_loss(x, y, x * x + 0.1, {o})",
    "F.binary_cross_entropy_with_logits(x, y.sigmoid(), {o})",
    "F.binary_cross_entropy_with_logits(x, (y > 0).to(x.dtype), {o}, pos_weight=y.abs() + 1)",
    "F.triplet_margin_loss(x, y, x + 1, {o})",
    "F.cosine_embedding_loss(x, y, (y[:, 0] > 0) * 2 - 1, {o})",
    "1 - F.cosine_similarity(x, y, dim=-1)",
    "F.multilabel_soft_margin_loss(x, (y > 0).to(x.dtype), {o})",
    "-(y.softmax(-1) * x.log_softmax(-1)).sum(-1).mean()",
    "(1 - (2 * (x.sigmoid() * y.sigmoid()).sum() + 1) / (x.sigmoid().sum() + y.sigmoid().sum() + 1))",
)
# Of numbers x (rows, classes) and classes t, whose name is y
OF_CLASSES = (
    "F.cross_entropy(x, y, {o})",
    "F.cross_entropy(x, y, {o}, label_smoothing=0.1)",
    "F.cross_entropy(x, y, {o}, ignore_index=1)",
    "F.cross_entropy(x, y, {o}, ignore_index=0, label_smoothing=0.2)",
    "F.cross_entropy(x, y, x[0].abs() + 0.5, {o})",
    "F.cross_entropy(x, y, x[0].abs() + 0.5, {o}, ignore_index=1)",
    "F.cross_entropy(x, y.where(y > 0, -100), {o})",
    "F.nll_loss(x.log_softmax(-1), y, {o})",
    "F.nll_loss(x.log_softmax(-1), y, {o}, ignore_index=1)",
    "F.cross_entropy(x, F.one_hot(y, {classes}).to(x.dtype), {o}, label_smoothing=0.1)",
    "((1 - x.softmax(-1)[range({rows}), y]) ** 2 * F.cross_entropy(x, y, {none})).mean()",
)
OF_PROBABILITIES = (
    "F.binary_cross_entropy(x, y, {o})",
    "F.binary_cross_entropy(x, (y > 0.5).to(x.dtype), {o})",
    "F.binary_cross_entropy(x, y, x + y, {o})",
    "-(y * x.log() + (1 - y) * (1 - x).log()).mean()",
)
OF_SIGNS = (
    "F.soft_margin_loss(x, y, {o})",
    "F.hinge_embedding_loss(x, y, {o})",
    "F.margin_ranking_loss(x, -x, y, {o})",
    "(1 - x * y).clamp(min=0).mean()",
)
# Of numbers x (rows, classes), classes y, and a mask z of rows
METRICS = (
    "(x.argmax(-1) == y).float().mean()",
    "((x.argmax(-1) == y) & z).sum() / z.sum().clamp(min=1)",
    "((x.argmax(-1) == y) * z).sum() / z.sum()",
    "torch.exp((F.cross_entropy(x, y, reduction='none') * z).sum() / z.sum().clamp(min=1))",
    "torch.exp(F.cross_entropy(x, y))",
    "(x.topk(2, -1).indices == y[:, None]).any(-1).float().mean()",
    "((x.argmax(-1) == 1) & (y == 1)).sum() / ((x.argmax(-1) == 1) | (y == 1)).sum().clamp(min=1)",
    "2 * ((x[:, 0] > 0) & z).sum() / ((x[:, 0] > 0).sum() + z.sum() + 1e-8)",
    "((x[:, 0] > 0) & ~z).sum() / (~z).sum().clamp(min=1)",
    "((x[:, 0] > 0) == z).float().mean() - (x[:, 0] > 0).float().mean()",
    "torch.stack([(p & z).sum(), (p & ~z).sum(), (~p & z).sum(), (~p & ~z).sum()])",
    "torch.stack([((x.argmax(-1) == c) & (y == c)).sum() for c in range(2)])",
    "(p & z).sum() / p.sum().clamp(1) * ((p & z).sum() / z.sum().clamp(1))",
    "torch.bincount(y * 2 + z, minlength={bins})",
    "torch.zeros({classes}, dtype=torch.int64).index_add(0, y, z.long())",
    "(F.one_hot(y, {classes}) * F.one_hot(x.argmax(-1), {classes})).sum(0)",
    "x.softmax(-1).max(-1).values[z].mean()",
    "torch.where(z, F.cross_entropy(x, y, reduction='none'), 0).sum() / z.float().sum()",
    "1 - ((x[:, 0] - y) ** 2).sum() / ((y - y.float().mean()) ** 2).sum().clamp(min=1)",
    "(x.argmax(-1) != y).sum(), z.sum(), (x.argmax(-1) == y).all()",
)


def loss(draft: Draft) -> SmallModule:
    """Returns a loss of numbers and a target."""
    rng = draft.rng
    dtype = rng.choice(FLOATS)
    rows = draft.length()
    classes = rng.choice((2, 3, 5, 10, 17, draft.length() + 1))
    form = rng.choice(("two", "classes", "classes", "probabilities", "signs"))
    x_values = PROBABILITIES if form == "probabilities" else "normal"
    draft.argument((rows, classes), dtype, x_values)
    choices = {"two": OF_TWO, "classes": OF_CLASSES, "probabilities": OF_PROBABILITIES, "signs": OF_SIGNS}[
        form
    ]
    if form == "classes":
        draft.argument((rows,), "int64", INDICES, classes)
    if form in ("two", "probabilities"):
        draft.argument((rows, classes), dtype, x_values)
    if form == "signs":
        draft.argument((rows, classes), dtype, SIGNS)
    text = rng.choice(choices).format(
        o=f"reduction={rng.choice(REDUCTIONS)!r}",
        none="reduction='none'",
        beta=rng.choice((0.5, 1.0, 2.0)),
        classes=classes,
        rows=rows,
    )
    draft.lines.append(f"return {text}")
    return draft.finished(specials=(rng.choice(SPECIALS),), has_truth=True)


def metric(draft: Draft) -> SmallModule:
    """Returns a metric of numbers, classes and a mask of rows."""
    rng = draft.rng
    rows = draft.length()
    classes = rng.choice((2, 3, 5, 10, 17))
    draft.argument((rows, classes), rng.choice(FLOATS))
    draft.argument((rows,), "int64", INDICES, classes)
    draft.argument((rows,), "bool", TRUTHS)
    text = rng.choice(METRICS).format(classes=classes, bins=2 * classes)
    if "(p " in text:
        draft.lines.append(
            f"p = {rng.choice(('x[:, 0] > 0', 'x.argmax(-1) == y', 'x[:, -1].sigmoid() > 0.5'))}"
        )
    draft.lines.append(f"return {text}")
    return draft.finished(specials=(rng.choice(SPECIALS),), has_truth=True)
