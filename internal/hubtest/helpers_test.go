package hubtest

// LlamaModel is NewLlama with every file in memory.
func LlamaModel(seed uint64, opt ModelOptions) map[string][]byte { return NewLlama(seed, opt).Files() }

// Qwen3Model is NewQwen3 with every file in memory.
func Qwen3Model(seed uint64, opt ModelOptions) map[string][]byte { return NewQwen3(seed, opt).Files() }
