//go:build (amd64 || arm64) && !nogpu

package cuda

import "golang.org/x/sys/windows"

// openLibrary loads the driver only from the system's folder, never from the program's folder or
// the working directory.
func openLibrary(path string) (uintptr, error) {
	flags := uintptr(0)
	if path == "" {
		path, flags = "nvcuda.dll", windows.LOAD_LIBRARY_SEARCH_SYSTEM32
	}
	lib, err := windows.LoadLibraryEx(path, 0, flags)
	return uintptr(lib), err
}

func lookup(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}
