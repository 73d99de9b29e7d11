package names

import "testing"

func TestMayBe(t *testing.T) {
	listed := File{"a", 7, "0a"}
	for f, want := range map[File]bool{
		{"a", 7, "0a"}: true, {"a", 7, ""}: true,
		{"a", 8, "0a"}: false, {"a", 8, ""}: false, {"b", 7, ""}: false, {"a", 7, "0b"}: false, {}: false,
	} {
		if f.MayBe(listed) != want {
			t.Errorf("%v: want %v", f, want)
		}
	}
}
