package metadata

// Methods of a verification.
const (
	MethodCPU = "cpu" // always
	MethodGPU = "gpu" // as well, where there is one
)
