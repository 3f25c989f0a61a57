/** A Messages API on the loopback: the real CLI talks to it, and the test says what it answers, and when. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Block = { text: string } | { thinking: string } | { tool: string; input: object };

interface Body {
  stream?: boolean;
  model?: string;
  messages?: { role: string; content: unknown }[];
}

/** An answer that the test gives piece by piece. */
export class Answer {
  private index = -1;
  private hasCalls = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly number: number,
    model: string,
    /** The last thing that the model is told, as JSON. */
    readonly heard: string,
    /** Everything that it is told. */
    readonly told: string,
  ) {
    const message = {
      id: `msg_${number}`,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 100, output_tokens: 1 },
    };
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    this.send({ type: "message_start", message });
  }

  private send(event: { type: string; [more: string]: unknown }): void {
    this.response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }

  /** Begins a text. */
  text(): this {
    this.send({ type: "content_block_start", index: ++this.index, content_block: { type: "text", text: "" } });
    return this;
  }

  /** Says more of it. */
  more(text: string): this {
    this.send({ type: "content_block_delta", index: this.index, delta: { type: "text_delta", text } });
    return this;
  }

  stopBlock(): this {
    this.send({ type: "content_block_stop", index: this.index });
    return this;
  }

  tool(name: string, input: object): this {
    this.hasCalls = true;
    const block = { type: "tool_use", id: `toolu_${this.number}_${++this.index}`, name, input: {} };
    this.send({ type: "content_block_start", index: this.index, content_block: block });
    this.send({
      type: "content_block_delta",
      index: this.index,
      delta: { type: "input_json_delta", partial_json: JSON.stringify(input) },
    });
    return this.stopBlock();
  }

  end(): void {
    const reason = this.hasCalls ? "tool_use" : "end_turn";
    this.send({
      type: "message_delta",
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { output_tokens: 20 },
    });
    this.send({ type: "message_stop" });
    this.response.end();
  }

  /** All of it at once. */
  say(text: string): void {
    this.text().more(text).stopBlock().end();
  }
}

export class Api {
  private readonly server: Server;
  private waiting: ((answer: Answer) => void)[] = [];
  private ready: Answer[] = [];
  private count = 0;

  private constructor() {
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  static async start(): Promise<Api> {
    const api = new Api();
    await new Promise<void>((then) => api.server.listen(0, "127.0.0.1", then));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const part of request) text += part;
    const body = JSON.parse(text || "{}") as Body;
    const isMessage = request.url?.startsWith("/v1/messages") && !request.url.includes("count_tokens");
    if (!isMessage || !body.stream) {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end(
        JSON.stringify(
          isMessage
            ? {
                id: "msg_0",
                type: "message",
                role: "assistant",
                model: body.model,
                content: [{ type: "text", text: "ok" }],
                stop_reason: "end_turn",
                stop_sequence: null,
                usage: { input_tokens: 1, output_tokens: 1 },
              }
            : { input_tokens: 100 },
        ),
      );
      return;
    }
    const answer = new Answer(
      response,
      ++this.count,
      body.model ?? "claude",
      JSON.stringify(body.messages?.at(-1)),
      text,
    );
    const next = this.waiting.shift();
    if (next) next(answer);
    else this.ready.push(answer);
  }

  /** The next question of the CLI, to be answered by the test. */
  asked(): Promise<Answer> {
    const ready = this.ready.shift();
    if (ready) return Promise.resolve(ready);
    return new Promise((then) => this.waiting.push(then));
  }

  /** Drops what nobody answered, and whoever still waits for a question. */
  forget(): void {
    for (const answer of this.ready) answer.end();
    [this.ready, this.waiting] = [[], []];
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
