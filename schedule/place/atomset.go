package place

// atomSet is a set of atoms, with the work of each operation independent of the size of the set (Briggs and Torczon,
// An efficient representation for sparse sets, ACM Letters on Programming Languages and Systems 2, 1993).
type atomSet struct {
	atoms []int32 // in any order
	at    []int32 // by atom: 1 + its index in atoms; 0: absent
}

func (s *atomSet) has(atom int32) bool { return s.at[atom] > 0 }

func (s *atomSet) add(atoms []int32) {
	for _, a := range atoms {
		if s.at[a] == 0 {
			s.atoms = append(s.atoms, a)
			s.at[a] = int32(len(s.atoms))
		}
	}
}

func (s *atomSet) remove(atoms []int32) {
	for _, a := range atoms {
		if k := s.at[a]; k > 0 {
			last := s.atoms[len(s.atoms)-1]
			s.atoms[k-1], s.at[last] = last, k
			s.atoms, s.at[a] = s.atoms[:len(s.atoms)-1], 0
		}
	}
}

func (s *atomSet) clear() {
	for _, a := range s.atoms {
		s.at[a] = 0
	}
	s.atoms = s.atoms[:0]
}
