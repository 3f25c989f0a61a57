export { BadEntry, Refused, RethreadError, Unreachable } from "./errors.js";
export { RethreadSessionStore, type RethreadSessionStoreOptions } from "./store.js";
