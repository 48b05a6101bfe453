"""What is done with a trained model: scores, transfer, comparison, prediction, pictures."""
