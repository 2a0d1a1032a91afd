"use strict";
// What decisions depend on besides the row: how frequent the classes are, and what errors on their rows cost.

const logit = (p) => Math.log(p / (1 - p));

/** The share and the cost of one class, beside those of all others. At first the classes are as frequent as in the data,
 * and the costs are those with which decisions are the model's own: its priors, divided by the shares. */
function policyFrom({ priors, mix, axes }) {
  const shares = Array.from(mix, (share) => Math.min(Math.max(share, 1e-6), 1 - 1e-6)), listeners = [];
  const costs = shares.map((share, k) => priors[k] / share);
  const ownRatio = (code) => costs[code] / (sum(costs.filter((_, k) => k !== code)) / (costs.length - 1));
  const policy = { priors, mix: shares };
  policy.choose = (code) => Object.assign(policy, { code, share: shares[code], ratio: ownRatio(code) });
  policy.change = (what) => { Object.assign(policy, what); listeners.forEach((listener) => listener()); };
  policy.reset = () => { policy.choose(policy.code); policy.change({}); };
  policy.onchange = (listener) => { listeners.push(listener); };
  /** What is added to the log-odds of the class in decisions: zero for those of the model. */
  policy.added = () => {
    const moved = policy.share !== shares[policy.code] || policy.ratio !== ownRatio(policy.code);
    return moved ? logit(policy.share) - logit(shares[policy.code]) + Math.log(policy.ratio / ownRatio(policy.code)) : 0;
  };
  /** The ratio of costs with which so much is added. */
  policy.ratioFor = (added) => ownRatio(policy.code) * Math.exp(added - logit(policy.share) + logit(shares[policy.code]));
  /** The shares of all classes: those of the others as in the data among themselves. */
  policy.shares = () => shares.map((share, k) => (k === policy.code ? policy.share : share * (1 - policy.share) / (1 - shares[policy.code])));
  policy.choose((axes[axes.length - 1] ?? { code: 1 }).code);
  return policy;
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** Log-odds with a number added to those of one class. */
function oddsWith(odds, code, added) {
  if (odds.length === 1) return [odds[0] + (code === 1 ? added : -added)];
  return odds.map((value, k) => (k === code ? value + added : value));
}

/** The probabilities of the classes if they are as frequent as the policy says; the odds have the priors of the model. */
function probabilitiesWith(odds, policy) {
  const shift = policy.shares().map((share, k) => Math.log(share / policy.priors[k]));
  if (odds.length === 1) return probabilitiesOf([odds[0] + shift[1] - shift[0]]);
  return probabilitiesOf(odds.map((value, k) => value + shift[k]));
}

/** The shares that probabilities are for, in words. */
function sharesText(policy, classes) {
  const asInData = Math.abs(policy.share - policy.mix[policy.code]) < 1e-9;
  if (asInData && classes.length > 2) return ["if the classes are as frequent as in these data"];
  return [`if ${percent(policy.share)} of the rows are of class `, named(classes[policy.code]), asInData ? ", as in these data" : ""];
}

/** The sliders of the policy. */
function policyControls(policy, axes, classes) {
  const share = element("input", { type: "range", min: -7, max: 7, step: 0.05, oninput: () => policy.change({ share: logistic(Number(share.value)) }) });
  const ratio = element("input", { type: "range", min: -6, max: 6, step: 0.05, oninput: () => policy.change({ ratio: 2 ** Number(ratio.value) }) });
  const shareShown = element("output", {}), ratioShown = element("output", {});
  const names = [element("span", {}), element("span", {})];
  const select = element("select", { onchange: () => { policy.choose(Number(select.value)); policy.change({}); } },
    axes.map(({ code }) => element("option", { value: code, selected: code === policy.code }, shortened(classes[code], 40))));
  const show = () => {
    share.value = logit(policy.share);
    ratio.value = Math.log2(policy.ratio);
    shareShown.textContent = percent(policy.share);
    ratioShown.textContent = `${counted(short(policy.ratio, 2), "error")} on other rows`;
    names.forEach((node) => node.replaceChildren(named(classes[policy.code])));
  };
  policy.onchange(show);
  show();
  return element("div", { class: "controls policy" },
    axes.length > 1 ? element("label", {}, "Class ", select) : null,
    element("label", {}, element("span", {}, "Share of rows of class ", names[0]), share, shareShown),
    element("label", {}, element("span", {}, "One error on a row of class ", names[1], " costs as much as"), ratio, ratioShown),
    element("button", { type: "button", onclick: policy.reset }, "Back to the model"));
}
