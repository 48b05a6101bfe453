// The tab Models.

import {element} from './api.js';

export async function show(root, parameters) {
  root.append(element('h1', {}, 'Models'));
}
