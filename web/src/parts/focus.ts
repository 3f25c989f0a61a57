/** Gives an element the focus as soon as it is there. `autofocus` does so only once in the life of a page. */

export function takeFocus(element: HTMLElement | null): void {
  element?.focus();
}
