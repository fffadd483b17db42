"""Search: one loop, one strategy a file, constraints as functions. Pure Keras, compiles nothing."""

from keras_seq2seq.search.beam import Beam
from keras_seq2seq.search.constraints import ForbiddenTokens, MinimumLength, NoRepeatedNgram, Progress
from keras_seq2seq.search.greedy import Greedy
from keras_seq2seq.search.limits import Limits
from keras_seq2seq.search.loop import search
from keras_seq2seq.search.prompts import Prompt
from keras_seq2seq.search.result import SearchResult
from keras_seq2seq.search.sampling import Sampling

__all__ = [
    "Beam",
    "ForbiddenTokens",
    "Greedy",
    "Limits",
    "MinimumLength",
    "NoRepeatedNgram",
    "Progress",
    "Prompt",
    "Sampling",
    "SearchResult",
    "search",
]
