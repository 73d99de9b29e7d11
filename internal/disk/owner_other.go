//go:build !unix

package disk

import "io/fs"

// whose always returns "", because access lists decide who may change a folder here.
func whose(fs.FileInfo) string { return "" }

// isShared is always false here.
func isShared(fs.FileInfo) bool { return false }

// Group always returns 0 here.
func Group(fs.FileInfo) int { return 0 }

// GroupIn always returns 0 here.
func GroupIn(fs.FileInfo) int { return 0 }

// inode always returns 0 here.
func inode(fs.FileInfo) uint64 { return 0 }

// Links always returns 1 here.
func Links(fs.FileInfo) uint64 { return 1 }

// withoutOthers returns "": modes don't say who may write.
func withoutOthers(fs.FileInfo) string { return "" }
