package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envPrefix begins the environment twin of every flag: --database-url is
// RATION_DATABASE_URL.
const envPrefix = "RATION_"

// EnvName is the environment twin of a flag.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// MentionEnv adds its environment twin to the help of every flag of cmd and
// the commands below it.
func MentionEnv(cmd *cobra.Command) {
	mention := func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(f.Usage, envPrefix) {
			f.Usage += " [" + EnvName(f.Name) + "]"
		}
	}
	cmd.Flags().VisitAll(mention)
	cmd.PersistentFlags().VisitAll(mention)
	for _, sub := range cmd.Commands() {
		MentionEnv(sub)
	}
}

// ApplyEnv sets every flag of cmd that was not given from its environment
// twin, if that is set and not empty.
func ApplyEnv(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(EnvName(f.Name))
		if f.Changed || f.Name == "help" || !ok || value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil && failed == nil {
			failed = Usagef("%s: %w", EnvName(f.Name), err)
		}
	})
	return failed
}

// Required returns a usage error for the first of the flags that is as by default,
// which of those that are required is empty.
func Required(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == f.DefValue {
			return Usagef("--%s is required (or %s)", name, EnvName(name))
		}
	}
	return nil
}

// Group is what a command does that only has commands: it shows them, and fails,
// so that a script that forgot which does not go on.
func Group(cmd *cobra.Command, _ []string) error {
	_ = cmd.Help()
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return Usagef("%s needs one of its commands: %s", cmd.CommandPath(), strings.Join(names, ", "))
}

// Examples indents the lines of an example block.
func Examples(lines ...string) string {
	return "  " + strings.Join(lines, "\n  ")
}

// Version adds a version command.
func Version(name, version string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: Examples(name + " version"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", name, version)
			return err
		},
	}
}
