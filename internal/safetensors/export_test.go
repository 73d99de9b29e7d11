package safetensors

// HeaderSize is headerSize, to test files that are too large to make.
var HeaderSize = headerSize
