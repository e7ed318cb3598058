"""Metrics of labeled inputs, by hand and against scikit-learn; confidence intervals, against published examples."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import ovir
from ovir.analysis.evaluation import (
    ModelEvaluation,
    ScoreDifference,
    beta_share,
    jackknife,
    mcnemar,
    mean_interval,
    paired_t,
    share_difference,
    t_quantile,
    wilson,
)
from ovir.analysis.metrics import FunctionMetric, Top, top_scores
from ovir.analysis.set_metrics import metric_of

ROWS = np.float32([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]])


def scores(name: str, output: object, label: object, peak: float | None = None) -> list[float]:
    return metric_of(name, peak=peak).scores(np.asarray(output), np.asarray(label)).tolist()


# --------------------------------------------------------------------------- metrics of single inputs


@pytest.mark.parametrize(
    ("name", "output", "labels", "expected"),
    [
        ("top1", ROWS, [1, 0, 2], [1, 1, 1]),
        ("top1", ROWS, [2, 2, 0], [0, 0, 0]),
        ("top2", ROWS, [2, 2, 0], [1, 1, 1]),
        ("top2", ROWS, [0, 1, 1], [0, 0, 0]),  # of equal scores, the first comes first
        ("top1", ROWS.astype(ml_dtypes.bfloat16), [1, 0, 2], [1, 1, 1]),
        ("top1", np.uint8([[0, 200, 100]]), [1], [1]),
        ("top1", [[math.nan, math.nan]], [0], [0]),  # what is not a number is never right
        ("top1", [[math.nan, -5.0]], [1], [1]),
        ("cosine", [0.0, 0], [0.0, 0], [1]),
        ("cosine", [0.0, 0], [1.0, 0], [0]),
        ("cosine", [1e-300, 1e-300], [1e-300, 1e-300], [1]),
        ("cosine", [4.0, 5.0, 6.0], [1.0, 2.0, 3.0], [32 / math.sqrt(14 * 77)]),
        ("mse", [2.0, 0.0, 6.0], [1.0, 2.0, 3.0], [14 / 3]),
        ("mae", [2.0, 0.0, 6.0], [1.0, 2.0, 3.0], [2]),
        ("psnr", [2.0, 0.0, 6.0], [1.0, 2.0, 3.0], [10 * math.log10(3 / 14)]),
        ("psnr", [[10, 20]], np.uint8([[12, 18]]), [10 * math.log10(255**2 / 4)]),
        ("psnr", [1.0], [1.0], [math.inf]),
        ("mse", np.ones((1, 3, 4)), np.zeros((3, 4, 1)), [1]),  # shapes may differ in axes of size 1
    ],
)
def test_scores(name: str, output: object, labels: object, expected: list[float]) -> None:
    assert scores(name, output, labels) == pytest.approx(expected)


def test_a_peak_may_be_given() -> None:
    assert scores("psnr", [[10.0, 20]], [[12.0, 18]], peak=100) == [pytest.approx(10 * math.log10(100**2 / 4))]


@pytest.mark.parametrize("name", ["top3", "top5"])
def test_top_of_all_classes_is_refused(name: str) -> None:
    with pytest.raises(ovir.InputError, match=f"{name} is always 100%: the output has 3 classes"):
        scores(name, ROWS, [0, 1, 1])


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1, 3, 1, 1), (3, 1)])
def test_a_label_of_one_row(shape: tuple[int, ...]) -> None:
    assert scores("top1", ROWS[0].reshape(shape), 1) == scores("top1", ROWS[0].reshape(shape), [1]) == [1]


def test_what_is_not_a_number_is_predicted_last() -> None:
    metric = metric_of("top1")
    assert isinstance(metric, Top)
    assert metric.predictions(np.array([[math.nan, -5.0], [1, 2]])).tolist() == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 5])
def test_top_agrees_with_scikit_learn(count: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn, of the extra `dev`")
    rng = np.random.default_rng(count)
    output, labels = rng.standard_normal((200, 10)), rng.integers(0, 10, 200)
    expected = metrics.top_k_accuracy_score(labels, output, k=count, labels=range(10))
    assert np.mean(scores(f"top{count}", output, labels)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("output", "label", "message"),
    [
        (ROWS, [1, 2, 3], "the label 3 is not a class: the output has the classes 0 to 2"),
        (ROWS, [1, 2, -1], "the label -1 is not a class"),
        (ROWS, [1, 2], "the label has 2 classes, and the output 3 rows of scores"),
        (ROWS, [1.0, 2.0, 0.0], "the label is float64, not a class"),
        ([[1.0]], [0], r"the output of shape \[1,1\] has no rows of scores"),
        (["a", "b"], [0], "the output is .* and has no numbers"),
    ],
)
def test_labels_that_do_not_match(output: object, label: object, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        scores("top1", output, label)


def test_shapes_that_differ() -> None:
    with pytest.raises(ovir.InputError, match=r"the label has the shape \[4,3\], and the output \[3,4\]"):
        scores("mse", np.ones((3, 4)), np.zeros((4, 3)))


@pytest.mark.parametrize("name", ["top0", "top", "msee", ""])
def test_unknown_metrics(name: str) -> None:
    with pytest.raises(ovir.InputError, match="there is no metric"):
        metric_of(name)


def test_a_function_of_the_user() -> None:
    def share(output: np.ndarray, label: object) -> object:
        return output if label != "x" else 1 / 0

    metric = FunctionMetric("mine", share)
    assert (metric.higher_is_better, metric.is_share) == (True, False)
    assert metric.scores(np.float32([[2], [3]]), np.array("a")).tolist() == [2, 3]
    assert FunctionMetric("n", lambda _, label: len(label)).scores(ROWS, np.array(["a", "bc"])).tolist() == [2]
    assert FunctionMetric("n", lambda _, label: label.ndim).scores(ROWS, np.array([5])).tolist() == [1]
    with pytest.raises(
        ovir.InputError, match=r"the metric 'mine' fails in .*test_evaluation\.py:\d+: ZeroDivisionError"
    ):
        metric.scores(ROWS, np.array(["x"]))
    with pytest.raises(ovir.InputError, match=r"'n' cannot be called with \(output, label\): TypeError"):
        FunctionMetric("n", lambda output: 1).scores(ROWS, ROWS)  # type: ignore[arg-type, misc]
    with pytest.raises(ovir.InputError, match="must return a number, or one for each sample, got 'a'"):
        FunctionMetric("n", lambda *_: "a").scores(ROWS, ROWS)
    share.is_share, share.higher_is_better = True, False  # type: ignore[attr-defined]
    assert (metric.higher_is_better, metric.is_share) == (False, True)
    assert metric.scores(np.array([0, 1]), np.array(1)).tolist() == [0, 1]
    with pytest.raises(ovir.InputError, match="is a share, so that it must return 0 or 1"):
        metric.scores(np.array([0, 2]), np.array(1))


@pytest.mark.parametrize(
    ("array", "count", "expected"),
    [
        (np.float32([1, 3, 2]), 2, [[(1, 3), (2, 2)]]),
        (np.float32([[1, 1], [math.nan, -5]]).reshape(2, 2, 1), 5, [[(0, 1), (1, 1)], [(1, -5), (0, math.nan)]]),
        (np.uint8([0, 255, 7]), 2, [[(1, 255), (2, 7)]]),
        (np.int8([-128, 127, 5]), 3, [[(1, 127), (2, 5), (0, -128)]]),
        (ROWS.astype(ml_dtypes.bfloat16)[:1], 1, [[(1, 0.69921875)]]),
        *((array, 1, None) for array in (np.float32([[1], [2]])[:1], np.array([True, False]), np.array(["a", "b"]))),
        *((array, 1, None) for array in (np.zeros((0, 2)), np.zeros(2, complex))),
    ],
)
def test_the_highest_scores(array: np.ndarray, count: int, expected: object) -> None:
    found = top_scores(array, count)
    np.testing.assert_equal(found and [[(score.number, score.value) for score in row] for row in found], expected)


# --------------------------------------------------------------------------- evaluations


def evaluated(name: str, outputs: list[object], labels: list[object]) -> ModelEvaluation:
    made = ModelEvaluation(metric_of(name))
    for number, (output, label) in enumerate(zip(outputs, labels, strict=True)):
        made.add(f"x{number}", np.asarray(output), np.asarray(label))
    return made


def test_an_evaluation_counts_samples_and_classes() -> None:
    found = evaluated("top1", [ROWS, ROWS[:1], ROWS[2:]], [[1, 0, 0], [2], [0]])
    assert (found.inputs, found.scores.size, found.value) == (3, 5, pytest.approx(2 / 5))
    assert found.interval.method == "Wilson score"
    zero, one, two = found.classes()
    assert (zero.number, zero.samples, zero.right, zero.instead) == (0, 3, 1, (2, 2))
    assert (one.number, one.samples, one.right, one.instead) == (1, 1, 1, None)
    assert (two.number, two.samples, two.right, two.instead) == (2, 1, 0, (1, 1))
    assert found.to_dict()["right"] == 2
    assert {"label": 0, "found": 2, "samples": 2} in found.to_dict()["confusion"]


def test_an_evaluation_of_errors_has_a_t_interval() -> None:
    found = evaluated("mae", [[1.0], [2.0], [3.0]], [[0.0]] * 3)
    assert found.value == pytest.approx(2)
    assert found.interval[:2] == pytest.approx((2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)))
    assert found.classes() == []


def test_an_evaluation_of_nothing() -> None:
    found = ModelEvaluation(metric_of("top1"))
    assert (found.value, found.interval, found.difference(found).value) == (None, None, None)


def test_the_difference_is_taken_on_common_inputs() -> None:
    right, wrong = [[0.0, 1.0]], [[1.0, 0.0]]
    first = evaluated("top1", [right] * 9 + [wrong, right], [[1]] * 11)
    second = evaluated("top1", [right] * 3 + [wrong] * 6 + [right], [[1]] * 10)
    found = first.difference(second)
    assert (found.samples, found.only_first, found.only_second, found.value) == (10, 6, 1, pytest.approx(0.5))
    assert found.p_value == pytest.approx(2 * (1 + 7) / 2**7)
    assert not found.is_shown


def test_the_difference_of_errors_is_paired() -> None:
    """Both models vary far more than they differ."""
    levels = np.arange(20.0) * 100
    found = ScoreDifference.of(levels + 1 + 0.1 * (np.arange(20) % 3), levels, is_share=False)
    assert found.value == pytest.approx(1.095)
    assert found.is_shown
    assert 1 < found.interval.low < found.interval.high < 1.2


@pytest.mark.parametrize("count", [0, 1, 2, 19, 20, 41])
def test_pseudovalues_of_a_mean_are_the_values(count: int) -> None:
    """Leave out groups of several values above 20; equally large groups have the mean of all values."""
    values = np.random.default_rng(0).normal(size=count)
    found = jackknife(lambda chosen: float(values[list(chosen)].sum()) / max(len(chosen), 1), count)
    if count > 20:
        assert found.size == 20
    else:
        np.testing.assert_allclose(found, values if count > 1 else [], rtol=1e-9, atol=1e-12)


def test_the_difference_of_a_metric_of_sets() -> None:
    values = np.linspace(-1, 0.5, 12)
    found = ScoreDifference.of_sets(lambda chosen: float(values[list(chosen)].mean()), 12)
    assert (found.samples, found.value, found.test) == (12, pytest.approx(-0.25), "t, jackknife")
    assert found.p_value == pytest.approx(paired_t(values))
    assert found.to_dict().keys() == {"samples", "value", "interval", "p_value", "test"}
    assert ScoreDifference.of_sets(lambda chosen: math.nan, 12) == ScoreDifference(12, None, None, None, "none")
    shares = evaluated("top1", [[0.1, 0.9]], [[1]])
    assert {"only_first", "only_second"} <= shares.difference(shares).to_dict().keys()


INF = float("inf")


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # R. G. Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(count: int, total: int, low: float, high: float) -> None:
    assert wilson(count, total)[:2] == pytest.approx((low, high), abs=5e-5)
    assert wilson(total - count, total)[:2] == pytest.approx((1 - high, 1 - low), abs=5e-5)
    assert wilson(0, 0) is None


def test_wilson_covers_what_it_promises() -> None:
    """Computed exactly: the mean coverage over shares is about 95 %."""
    size = 50
    shares = np.linspace(0.01, 0.99, 99)
    logs = [math.lgamma(size + 1) - math.lgamma(k + 1) - math.lgamma(size - k + 1) for k in range(size + 1)]
    covered = np.zeros(len(shares))
    for k, log in enumerate(logs):
        interval = wilson(k, size)
        inside = (interval.low <= shares) & (shares <= interval.high)
        covered += inside * np.exp(log + k * np.log(shares) + (size - k) * np.log1p(-shares))
    assert covered.mean() == pytest.approx(0.952, abs=0.005)
    assert covered.min() > 0.9


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980), (10**7, 1.959964)],
)
def test_quantiles_of_student(freedom: int, expected: float) -> None:
    """Compare with printed tables; many degrees of freedom give the normal distribution."""
    assert t_quantile(0.975, freedom) == pytest.approx(expected, abs=1e-5 if freedom > 120 else 5e-4)
    assert t_quantile(0.75, 1) == pytest.approx(1.0)  # of Cauchy's distribution


def test_the_interval_of_a_mean() -> None:
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])  # mean 3, standard deviation sqrt(2.5), t = 2.7764
    half = 2.7764451 * math.sqrt(2.5 / 5)
    assert found[:2] == pytest.approx((3 - half, 3 + half))
    for values in ([], [1.0], [1.0, INF], [1.0, math.nan]):
        assert mean_interval(values) is None


@pytest.mark.parametrize(
    ("table", "low", "high"),
    # R. G. Newcombe, Improved confidence intervals for the difference between ... paired data, 1998, table II
    [((36, 12, 2, 0), 0.0569, 0.3404), ((20, 12, 2, 16), 0.0562, 0.3292)],
)
def test_the_difference_of_shares(table: tuple[int, int, int, int], low: float, high: float) -> None:
    assert share_difference(*table)[:2] == pytest.approx((low, high), abs=5e-5)
    both, first, second, neither = table
    assert share_difference(both, second, first, neither)[:2] == pytest.approx((-high, -low), abs=5e-5)


def test_the_difference_of_shares_at_the_ends() -> None:
    assert share_difference(0, 0, 0, 0) is None
    found = share_difference(0, 10, 0, 0)
    assert 0 < found.low < found.high == 1
    equal = share_difference(50, 0, 0, 50)
    assert equal.low == pytest.approx(-equal.high)


@pytest.mark.parametrize(("first", "second"), [(2, 12), (0, 6), (5, 5), (1, 0), (0, 0), (30, 50)])
def test_mcnemar_is_a_binomial_test(first: int, second: int) -> None:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1))
    assert (
        mcnemar(first, second) == mcnemar(second, first) == pytest.approx(float(min(1, Fraction(2 * tail, 2**total))))
    )


def test_mcnemar_of_many() -> None:
    assert mcnemar(20_000, 20_400) == pytest.approx(math.erfc(399 / math.sqrt(40_400) / math.sqrt(2)), rel=1e-3)


def test_paired_t() -> None:
    # differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 3.4641 with 2 degrees of freedom, whose two tails are
    # 1 - t / sqrt(t^2 + 2)
    t = 2 * math.sqrt(3)
    assert paired_t([1.0, 2.0, 3.0]) == pytest.approx(1 - t / math.sqrt(t * t + 2))
    assert paired_t([0.0, 0.0]) == 1
    assert paired_t([1.0, 1.0]) == 0
    assert paired_t([1.0]) is None


@pytest.mark.parametrize("x", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
def test_beta(x: float) -> None:
    assert beta_share(x, 1, 1) == pytest.approx(x)
    assert beta_share(x, 2, 3) == pytest.approx(6 * x**2 - 8 * x**3 + 3 * x**4)
    assert beta_share(x, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)))
