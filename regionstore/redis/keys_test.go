package redis

import (
	"strings"
	"testing"
)

// Seen to fail when tag joined region and tenant with ":" unhashed.
func TestNamesNeverCollideNorEscapeTheirSlot(t *testing.T) {
	names := []string{
		"a", "a_b", "a:b", "a b", "a/b", "a/b/c", "a/b_c", "a_b/c", "a:b/c", "{a}", "{a}/b", "a}/b", "{", "}", "}{",
		"{}", "{}/a", "\x00", "a\x00", "a\x00/b", "\x00a", "münchen/größe", "日本/検索", "ration:x", "w:a", "a/", "/a", "/", " ",
		strings.Repeat("x", 256), strings.Repeat("x", 255) + "/", strings.Repeat("x", 255),
		"t/" + strings.Repeat("{", 254), "t/" + strings.Repeat("é", 127), "r", "us", "us/a",
	}
	seen := map[string]string{}
	for _, region := range []string{"us", "us:a", "us\x00", "u", "{us}"} {
		k := keyspace{prefix: "ration", region: region, cluster: true}
		for _, n := range names {
			for what, key := range map[string]string{"row": k.row(n), "answer": k.answer(n, n)} {
				id := region + "|" + n + "|" + what
				if other, ok := seen[key]; ok {
					t.Errorf("%q and %q share %s", id, other, key)
				}
				seen[key] = id
				if !strings.HasPrefix(key, "{ration:") || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 {
					t.Errorf("%q has the key %s", id, key)
				}
			}
		}
	}
}

func TestSlotIsTheClusters(t *testing.T) {
	if got := crc16("123456789"); got != 0x31c3 {
		t.Errorf("crc16 of the check string: %#x", got)
	}
	k := keyspace{prefix: "ration", region: "us", cluster: true}
	if k.slot("acme/a") != k.slot("acme/b") || k.slot("acme/a") == k.slot("other/a") {
		t.Errorf("slots follow something else than the tenant")
	}
	if (keyspace{prefix: "ration", region: "us"}).slot("acme/a") != 0 {
		t.Errorf("a single primary has one slot group")
	}
}
