# Expected: DP001
"""Another library."""

import tensorflow as tf
import tensorflow_privacy

optimizer = tensorflow_privacy.DPKerasSGDOptimizer(
    l2_norm_clip=1.0, noise_multiplier=1.1, num_microbatches=1, learning_rate=0.1
)
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
