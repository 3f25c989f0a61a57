/** The pictures that will go with a prompt: small, with a way to take each out again. */

import { Icon } from "../parts/icon.tsx";
import { type Picture, source } from "../state/pictures.ts";

export function Pictures({ all, drop }: { all: Picture[]; drop: (picture: Picture) => void }) {
  if (all.length === 0) return null;
  return (
    <ul class="pictures" aria-label="Pictures that go with the prompt">
      {all.map((it) => (
        <li key={it.id} title={[it.name, `${it.width} × ${it.height}`].filter(Boolean).join(" · ")}>
          <img src={source(it)} alt={it.name || "A picture"} />
          <button
            type="button"
            class="icon"
            aria-label={`Take out ${it.name || "the picture"}`}
            onClick={() => drop(it)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}
