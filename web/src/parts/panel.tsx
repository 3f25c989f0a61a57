/** A panel over the page for something short; Escape or a click beside it closes it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";

export function Panel({
  title,
  close,
  children,
  class: name,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={name ? `panel ${name}` : "panel"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="panel-body">
        <header>
          <h2>{title}</h2>
          <button type="button" class="bare icon" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
