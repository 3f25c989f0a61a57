/** Directories to begin in: the ones that the keeper may show, one level at a time. */

import { useEffect, useState } from "preact/hooks";
import { get, Refused } from "../api/keeper.ts";
import type { DirectoryPage } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { plain } from "../text/safe.ts";
import { place } from "../text/words.ts";

interface DirectoriesProps {
  /** The directory that is chosen; nothing shows where to begin. */
  path: string;
  choose: (path: string) => void;
}

export function Directories({ path, choose }: DirectoriesProps) {
  const [page, put] = useState<DirectoryPage | undefined>(undefined);
  const [problem, fail] = useState("");
  const read = (cursor?: string, abort?: AbortSignal) => {
    const query = new URLSearchParams({ limit: "200" });
    if (path) query.set("path", path);
    if (cursor) query.set("cursor", cursor);
    return get<DirectoryPage>(`/directories?${query}`, abort);
  };
  useEffect(() => {
    const abort = new AbortController();
    // Not for every letter that is typed.
    const timer = setTimeout(
      () => {
        read(undefined, abort.signal).then(
          (found) => {
            put(found);
            fail("");
          },
          (error: unknown) => {
            if (!(error instanceof Refused)) return;
            fail(
              error.problem.status === 404 ? "There is no such directory, or it is not an allowed one." : error.message,
            );
          },
        );
      },
      page ? 150 : 0,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path]);
  const more = async () => {
    const found = await read(page?.next ?? undefined).catch(() => undefined);
    if (page && found) put({ ...found, items: [...page.items, ...found.items] });
  };
  if (!page && !problem) return <div class="directories" aria-busy="true" />;
  return (
    <div class="directories" role="group" aria-label="Directories">
      {problem && (
        <p class="quiet none" role="status">
          {problem}{" "}
          <button type="button" class="text" onClick={() => choose("")}>
            Start over
          </button>
        </p>
      )}
      {!problem && page && (
        <ul>
          {page.path && (
            <li>
              <button type="button" class="item" onClick={() => choose(page.parent ?? "")} disabled={!page.parent}>
                <Icon name="up" />
                <span class="cut quiet">{page.parent ? place(page.parent) : "nothing above is allowed"}</span>
              </button>
            </li>
          )}
          {page.items.map((it) => (
            <li key={it.path}>
              <button type="button" class="item" title={it.path} onClick={() => choose(it.path)}>
                <Icon name="folder" />
                <span class="cut grow">{plain(page.path ? it.name : place(it.path))}</span>
                {it.repository && <span class="quiet">repository</span>}
              </button>
            </li>
          ))}
          {page.items.length === 0 && <li class="quiet none">No directories in it.</li>}
          {page.next && (
            <li>
              <button type="button" class="text" onClick={() => void more()}>
                More
              </button>
            </li>
          )}
        </ul>
      )}
    </div>
  );
}
