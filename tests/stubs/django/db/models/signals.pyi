class ModelSignal:
    receivers: list[tuple[object, ...]]

pre_migrate: ModelSignal
post_migrate: ModelSignal
