/** A sentence of the keeper's: what stands between backticks is to be typed. */

export function Quoted({ words }: { words: string }) {
  return <>{words.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}
