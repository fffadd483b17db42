"""`python -m keras_seq2seq` is the command `keras-seq2seq`."""

import sys

from keras_seq2seq.cli import main

sys.exit(main())
