//! Graph attention: layers, encoders and policies over graphs.
