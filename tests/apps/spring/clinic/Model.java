package clinic;

import com.fasterxml.jackson.annotation.*;
import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.type.SqlTypes;

@Entity
@Table(name = "types")
class PetType {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    @Column(columnDefinition = "int unsigned")
    public Integer id;
    public String name;
}

enum Mood {CALM, NERVOUS, WILD}

@Entity
@Table(name = "owners")
class Owner {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Long id;
    public String firstName;
    public String lastName;
    public String city;
    public String telephone;
    public BigDecimal balance = BigDecimal.ZERO;
    @Version
    public int version;
    @JsonIgnore
    public LocalDateTime createdAt = LocalDateTime.now();
    @Column(insertable = false, updatable = false)
    @org.hibernate.annotations.Generated(event = {org.hibernate.generator.EventType.INSERT, org.hibernate.generator.EventType.UPDATE})
    public String fullName;
    @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL, orphanRemoval = true)
    @OrderBy("name, id")
    public List<Pet> pets = new ArrayList<>();
}

@Entity
@Table(name = "pets")
class Pet {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Long id;
    public String name;
    public LocalDate birthDate;
    @ManyToOne(optional = false)
    public PetType type;
    @JsonIgnore
    @ManyToOne(optional = false, fetch = FetchType.LAZY)
    public Owner owner;
    @Enumerated(EnumType.STRING)
    @Column(columnDefinition = "enum('CALM','NERVOUS','WILD')")
    public Mood mood = Mood.CALM;
    @OneToMany(mappedBy = "pet", cascade = CascadeType.ALL)
    @OrderBy("date desc, id")
    public Set<Visit> visits = new LinkedHashSet<>();
}

@Entity
@Table(name = "visits")
class Visit {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Long id;
    @JsonIgnore
    @ManyToOne(optional = false, fetch = FetchType.LAZY)
    public Pet pet;
    @Column(name = "visit_date")
    public LocalDate date;
    @Column(columnDefinition = "text")
    public String description;
    @JdbcTypeCode(SqlTypes.JSON)
    public Map<String, Object> details;
    @ManyToOne
    public Vet vet;
}

@Entity
@Table(name = "vets")
@JsonIgnoreProperties({"hibernateLazyInitializer", "handler"})
class Vet {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Long id;
    public String name;
    @ManyToMany(fetch = FetchType.EAGER)
    @JoinTable(name = "vet_specialties", joinColumns = @JoinColumn(name = "vet_id"), inverseJoinColumns = @JoinColumn(name = "specialty_id"))
    @OrderBy("name")
    public Set<Specialty> specialties = new LinkedHashSet<>();
}

@Entity
@Table(name = "specialties")
class Specialty {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    public Integer id;
    public String name;
}
