"""Pictures of trees, wordpieces and matrices as SVG, and summaries as HTML, without a library.

The same input always gives the same bytes. A picture has a title and a description for screen
readers, follows the reader's light or dark scheme, and holds no script and no outer reference.
"""
