package faults_test

const setupEnv = "PAWL_FAULTS_SETUP"

type setup struct{}
type access struct{}

func perform(string) int { return 0 }
