// Names of the tags that features hold as ids: those of `syntax.trees.ud`, in the same order.

const UPOS = '_ ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X';
const DEPREL = '_ acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det '
  + 'discourse dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan '
  + 'parataxis punct reparandum root vocative xcomp';

const TAGS = {upos: UPOS.split(' '), deprel: DEPREL.split(' ')};

/** An id of a column of features with its name, such as `6 DET`; other columns stay as they are. */
export function tagged(column, value) {
  const name = value ? TAGS[column]?.[value] : '';
  return name ? `${value} ${name}` : String(value);
}
