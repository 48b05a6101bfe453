"""Uses of a trained model: scores, transfer, comparison, prediction, pictures."""
