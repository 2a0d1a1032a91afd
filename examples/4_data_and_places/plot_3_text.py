"""
Classifying text documents
==========================

The features are word frequencies: one column for every word, in which nearly all values are zero. ``MELC`` can be
fitted to such a sparse matrix directly. Here it tells complaints from praise, in randomly generated messages.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from melc import MELC
from melc.plotting import WeightsDisplay

BOTH = "hello please thanks the a this with our your order day week customer number time again still now".split()
COMPLAINT = "broken refund late angry missing return damaged waiting wrong complaint disappointed scratched".split()
PRAISE = "great happy quick friendly perfect recommend lovely excellent helpful pleased wonderful fast".split()


def message(rng, kind):
    """Words that everybody uses, some of the kind, and now and then one of the other kind."""
    own, other = (COMPLAINT, PRAISE) if kind == "complaint" else (PRAISE, COMPLAINT)
    words = [*rng.choice(BOTH, 14), *rng.choice(own, rng.integers(1, 4)), *rng.choice(other, rng.integers(0, 2))]
    return " ".join(rng.permutation(words))


rng = np.random.default_rng(0)
kinds = np.where(rng.uniform(size=2000) < 0.3, "complaint", "praise")
texts = [message(rng, kind) for kind in kinds]
print(texts[0], "→", kinds[0])

# %%
# A pipeline of a vectorizer and the classifier:

texts_train, texts_test, y_train, y_test = train_test_split(texts, kinds, stratify=kinds, random_state=0)
model = make_pipeline(TfidfVectorizer(), MELC(random_state=0)).fit(texts_train, y_train)
print("accuracy on new messages:", round(model.score(texts_test, y_test), 3))

# %%
# The weights show which words are evidence for which kind of message:

words = model[0].get_feature_names_out()
WeightsDisplay.from_estimator(model[-1], feature_names=words, max_features=16, title="contributions of the words")
