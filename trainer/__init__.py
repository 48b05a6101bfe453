"""Models that read syntax, and the loop that trains them from the feature store.

The package needs the extra ``train`` (``pip install "parsebank[train]"``); its modules, from the
data to the result:

* `trainer.data`: a stored dataset as a stream of `trainer.batch.SyntaxBatch` on the right device;
* `trainer.loader`: a stream behind PyTorch's ``DataLoader``, for training loops of your own;
* `trainer.models`: encoders that syntax biases through transformers' attention interface;
* `trainer.objectives`: auxiliary losses over the syntax states;
* `trainer.tasks`: what a model predicts and how that is scored;
* `trainer.recipes`: runs as functions that return a dataclass;
* `trainer.loop`, `trainer.evaluation`, `trainer.checkpoint`: training, scoring, exact resume.
"""
