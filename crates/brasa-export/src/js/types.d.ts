/** A number of an observation, or an action; a bound that is null is infinite or unknown. */
export interface Column {
  name: string;
  unit: string | null;
  low: number | null;
  high: number | null;
}
/** What is known of the origin of a policy; columns are in the order of `obs` and of the actions of one agent. */
export interface About {
  version: string;
  run: string | null;
  step: number | null;
  config: string | null;
  obs: Column[];
  actions: Column[];
}
export interface Policy {
  /** Greedy actions of all agents; `mask` is needed where environments have one. Choices are indices, or -1 if the input is invalid; invalid continuous actions are NaN. */
  act(obs: ArrayLike<number>, mask?: ArrayLike<number> | null, state?: Float32Array | number[] | null): number[];
  /** The result of the last layer, an array per agent: scores of choices, or actions. It does not change `state`. */
  scores(obs: ArrayLike<number>, state?: ArrayLike<number> | null): Float32Array[];
  /** What a policy remembers where an episode begins, an argument of `act`, which replaces its numbers; empty for a policy without memory. */
  start(): Float32Array;
  readonly about: About;
}
