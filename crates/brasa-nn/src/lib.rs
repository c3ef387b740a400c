//! Networks, distributions and optimizers of Brasa.
