//! What the tests of Brasa share: golden data, devices, tolerances.
