//go:build !noasm

package verify

// groups4 is groupsGo for four lanes, in assembly.
func groups4(m *multiTable, lanes []lane) (lost uint) {
	four := (*[maxLanes]lane)(lanes)
	return groups4BMI2(m, four, four[0].codes)
}

// groups4BMI2 is the loop of groups4. cs is the first lane's codes, in an array with those of the others.
//
//go:noescape
func groups4BMI2(m *multiTable, lanes *[maxLanes]lane, cs *codes) (lost uint)
