/** A component that is rendered again only when it would show something else. */

import { Component, type ComponentChild, type FunctionComponent } from "preact";

export function memo<P extends object>(
  render: (props: P) => ComponentChild,
  same: (one: P, other: P) => boolean,
): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !same(this.props as P, next);
    }
    override render(): ComponentChild {
      return render(this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
