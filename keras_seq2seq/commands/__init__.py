"""Commands of `keras-seq2seq`, one a file."""
