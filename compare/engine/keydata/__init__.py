"""Key data of a reinforcement-learning run: the tables between the stages, and the configuration they were made with.

``places`` tells the files by their names. ``tables`` reads .npy and .json (never a pickle) into ``model.KeyData``; ``configuration`` reads
what the trainer was told (``printed``: out of a log), ``requests`` the logs of an asynchronous rollout. ``store`` keeps all three beside a
run's columns. ``settings`` compares two configurations; ``preconditions`` says what they lack for comparing training with inference, by
equations (``formula``) over ``named_numbers``: what is asked for is ``preconditions.yaml``. ``alignment`` pairs lists by content and
says which positions are padding, ``meeting`` where a place of one run is on the other. ``table_pair`` compares two tables (``numbers``,
``by_statistics``), ``by_sequence`` those whose sequences moved, ``comparison`` does so for all keys; ``consequences`` says which
differences follow from others. ``published`` answers what is in one table. Words about it are the business of ``diagnose``.
"""
