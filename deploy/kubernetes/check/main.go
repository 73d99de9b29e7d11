// Command check builds the kustomization of a directory, decodes every object strictly into its type of the Kubernetes API, and
// prints what each container would run, as shell commands in the order of their pods. It talks to no cluster.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return err
	}
	configs, jobs := map[string]core.ConfigMap{}, []batch.Job{}
	for _, o := range objects.Resources() {
		b, err := o.AsYAML()
		if err != nil {
			return err
		}
		switch o.GetKind() {
		case "ConfigMap":
			var c core.ConfigMap
			err = yaml.UnmarshalStrict(b, &c)
			configs[c.Name] = c
		case "Job":
			var j batch.Job
			err = yaml.UnmarshalStrict(b, &j)
			jobs = append(jobs, j)
		default:
			err = errors.New("no Job and no ConfigMap")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	slices.SortFunc(jobs, func(a, b batch.Job) int { return strings.Compare(b.Name, a.Name) }) // parts before finish
	for _, j := range jobs {
		if err := printJob(j, configs); err != nil {
			return fmt.Errorf("job %s: %w", j.Name, err)
		}
	}
	return nil
}

// printJob prints the commands of all pods of a Job that needs one pod, or one for each index.
func printJob(j batch.Job, configs map[string]core.ConfigMap) error {
	pod := j.Spec.Template.Spec
	if j.Spec.PodFailurePolicy != nil && pod.RestartPolicy != core.RestartPolicyNever {
		return errors.New("a podFailurePolicy needs the restartPolicy Never")
	}
	pods, indexed := int32(1), j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batch.IndexedCompletion
	if indexed {
		if j.Spec.Completions == nil {
			return errors.New("an Indexed Job needs completions")
		}
		pods = *j.Spec.Completions
	}
	for i := range pods {
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			env, err := environment(c, configs)
			if err != nil {
				return fmt.Errorf("container %s: %w", c.Name, err)
			}
			line, err := commandLine(c, env)
			if err != nil {
				return fmt.Errorf("container %s: %w", c.Name, err)
			}
			if indexed {
				line = "JOB_COMPLETION_INDEX=" + strconv.Itoa(int(i)) + " " + line
			}
			fmt.Println(line)
		}
	}
	return nil
}

// environment gives the variables of a container whose values are known here: secrets are not.
func environment(c core.Container, configs map[string]core.ConfigMap) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		config, ok := configs[from.ConfigMapRef.Name]
		if !ok {
			return nil, fmt.Errorf("there is no ConfigMap %s", from.ConfigMapRef.Name)
		}
		for k, v := range config.Data {
			env[k] = v
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env[e.Name] = e.Value
		}
	}
	return env, nil
}

var variable = regexp.MustCompile(`\$\((\w+)\)`)

// commandLine is the container's command and arguments with the references to variables replaced, quoted for a shell.
func commandLine(c core.Container, env map[string]string) (string, error) {
	var words []string
	var unknown error
	for _, word := range slices.Concat(c.Command, c.Args) {
		word = variable.ReplaceAllStringFunc(word, func(ref string) string {
			v, ok := env[variable.FindStringSubmatch(ref)[1]]
			if !ok {
				unknown = fmt.Errorf("%s stands for nothing", ref)
			}
			return v
		})
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " "), unknown
}
